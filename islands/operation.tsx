import { type OperationData, OperationPage } from "../components/OperationPage.tsx";
import { mount } from "./mount.tsx";

mount<OperationData>({
  component: OperationPage,
  events: ["operation", "status"],
  apply: () => "refetch",
});
