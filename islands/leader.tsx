import { LeaderPage } from "../components/LeaderPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

mount(refetching(LeaderPage, ["leader"]));
