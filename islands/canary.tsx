import { CanaryPage } from "../components/CanaryPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

mount(refetching(CanaryPage, ["assignment", "backend"]));
