import { givingUpPage } from "../../../web/actions/giving_up_page.ts";

/** What giving up a job would do. */
export default givingUpPage("release");
