import { type AuditData, AuditPage } from "../components/AuditPage.tsx";
import { mount } from "./mount.tsx";

mount<AuditData>({
  component: AuditPage,
  events: ["operation", "status"],
  apply: () => "refetch",
});
