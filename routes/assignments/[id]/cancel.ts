import { givingUpPage } from "../../../web/actions/giving_up_page.ts";

/** What cancelling a job would do. */
export default givingUpPage("cancel");
