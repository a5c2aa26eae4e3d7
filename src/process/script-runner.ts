/** The program that runs a script of that name; undefined: it has the name of no script. */
export function scriptRunner(file: string): 'node' | 'python3' | undefined {
  if (/\.[cm]?js$/.test(file)) return 'node';
  return /\.py$/.test(file) ? 'python3' : undefined;
}
