import { type LeaderData, LeaderPage } from "../components/LeaderPage.tsx";
import { mount } from "./mount.tsx";

mount<LeaderData>({
  component: LeaderPage,
  events: ["leader", "status"],
  apply: () => "refetch",
});
