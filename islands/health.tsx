import { type HealthData, HealthPage } from "../components/HealthPage.tsx";
import { mount } from "./mount.tsx";

mount<HealthData>({
  component: HealthPage,
  events: ["status"],
  apply: () => "refetch",
});
