import { type HistoryData, HistoryPage } from "../components/HistoryPage.tsx";
import { mount } from "./mount.tsx";

mount<HistoryData>({
  component: HistoryPage,
  events: ["assignment", "status"],
  apply: () => "refetch",
});
