/** Puts text between the markers `<!-- name: made by … -->` and `<!-- end of name -->`. Throws when they are missing. */
export function withGeneratedPart(readme: string, name: string, text: string): string {
  const { begin, end } = findPart(readme, name);
  return `${readme.slice(0, begin)}\n\n${text.trimEnd()}\n\n${readme.slice(end)}`;
}

/** What stands there now, without the empty lines around it. */
export function generatedPart(readme: string, name: string): string {
  const { begin, end } = findPart(readme, name);
  return readme.slice(begin, end).trim();
}

function findPart(readme: string, name: string): { readonly begin: number; readonly end: number } {
  const opening = `<!-- ${name}: made by \`npm run docs\`, do not edit -->`;
  const begin = readme.indexOf(opening);
  const end = readme.indexOf(`<!-- end of ${name} -->`);
  if (begin === -1 || end < begin) throw new Error(`the markers of ${name} are missing`);
  return { begin: begin + opening.length, end };
}
