import { HealthPage } from "../components/HealthPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

mount(refetching(HealthPage, []));
