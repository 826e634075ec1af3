import { ExecutorsPage } from "../components/ExecutorsPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

mount(refetching(ExecutorsPage, ["executor", "assignment", "backend"]));
