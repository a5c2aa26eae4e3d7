/** The build puts these files in as text. */
declare module '*.md' {
  const text: string;
  export default text;
}
