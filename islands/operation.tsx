import { OperationPage } from "../components/OperationPage.tsx";
import { mount } from "./mount.tsx";
import { refetching } from "./refetching.ts";

mount(refetching(OperationPage, ["operation"]));
