import { type AssignmentData, AssignmentPage } from "../components/AssignmentPage.tsx";
import { mount } from "./mount.tsx";

mount<AssignmentData>({
  component: AssignmentPage,
  events: ["assignment", "operation", "status"],
  apply(data, messages) {
    // The stream carries the row; events and phases come with the whole assignment.
    const mine = messages.some(({ old, new: now }) =>
      [old, now].some((view) => isOf(view, data.assignment.id))
    );
    return mine ? "refetch" : data;
  },
});

function isOf(view: unknown, id: string): boolean {
  if (typeof view !== "object" || view === null) return false;
  return ("id" in view && view.id === id) || ("target" in view && view.target === id);
}
