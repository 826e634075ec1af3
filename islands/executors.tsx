import { type ExecutorsData, ExecutorsPage } from "../components/ExecutorsPage.tsx";
import { mount } from "./mount.tsx";

mount<ExecutorsData>({
  component: ExecutorsPage,
  events: ["executor", "assignment", "backend", "status"],
  apply: () => "refetch",
});
