import { type CanaryData, CanaryPage } from "../components/CanaryPage.tsx";
import { mount } from "./mount.tsx";

mount<CanaryData>({
  component: CanaryPage,
  events: ["assignment", "backend", "status"],
  apply: () => "refetch",
});
