import type { Result } from "../../controller/model/reason.ts";

/** The result that a status of Gitea's pages stands for; null while it has none. */
export function fromStatus(status: string): Result | null {
  switch (status) {
    case "success":
    case "failure":
    case "cancelled":
    case "skipped":
      return status;
    default:
      return null;
  }
}
