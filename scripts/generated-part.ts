/** Puts text between the markers `<!-- name: made by … -->` and `<!-- end of name -->`. Throws when they are missing. */
export function withGeneratedPart(document: string, name: string, text: string): string {
  const { begin, end } = findPart(document, name);
  return `${document.slice(0, begin)}\n\n${text.trimEnd()}\n\n${document.slice(end)}`;
}

/** What stands there now, without the empty lines around it. */
export function generatedPart(document: string, name: string): string {
  const { begin, end } = findPart(document, name);
  return document.slice(begin, end).trim();
}

function findPart(document: string, name: string): { readonly begin: number; readonly end: number } {
  const opening = `<!-- ${name}: made by \`npm run docs\`, do not edit -->`;
  const begin = document.indexOf(opening);
  const end = document.indexOf(`<!-- end of ${name} -->`);
  if (begin === -1 || end < begin) throw new Error(`the markers of ${name} are missing`);
  return { begin: begin + opening.length, end };
}
