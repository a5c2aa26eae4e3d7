/** The build puts the script in as text; it runs in browsers only. */
declare const text: string;
export default text;
