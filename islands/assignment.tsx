import { type AssignmentData, AssignmentPage } from "../components/AssignmentPage.tsx";
import { isObject } from "../lib/json_object.ts";
import { mount } from "./mount.tsx";

mount<AssignmentData>({
  component: AssignmentPage,
  events: ["assignment", "operation", "leader", "status"],
  apply(data, messages) {
    // The stream carries the row; events and phases come with the whole assignment.
    const mine = messages.some(({ event, old, new: now }) =>
      event === "leader" || [old, now].some((view) => isOf(view, data.assignment.id))
    );
    return mine ? "refetch" : data;
  },
});

function isOf(view: unknown, id: string): boolean {
  return isObject(view) && (view.id === id || view.target === id);
}
