import { type BackendData, BackendPage } from "../components/BackendPage.tsx";
import { mount } from "./mount.tsx";

mount<BackendData>({
  component: BackendPage,
  events: ["backend", "assignment", "operation", "status"],
  apply: () => "refetch",
});
