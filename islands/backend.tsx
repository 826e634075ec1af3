import { BackendPage } from "../components/BackendPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

mount(refetching(BackendPage, ["backend", "assignment", "operation"]));
