/** Bundles src/program.ts with what it imports into the files that scripts/program-parts.js lists. */
import { join, relative, sep } from 'node:path';
import { build } from 'esbuild';
import { BASE, DEFERRED_BUILTINS, PARTS } from './program-parts.js';

const ENTRY = 'src/program.ts';
/** Stands for a module of another part while a part is bundled. */
const ELSEWHERE = 'part:';

/** The code that finds the library in the built program. */
export const LIBRARY = moduleOf('cli', ENTRY);

/** @param {import('esbuild').BuildOptions} options */
export async function bundleProgram(options) {
  const modules = await readModules(options);
  const partOf = assignParts(modules);
  const exported = await readExports(exportsOf(modules, partOf));
  const built = await Promise.all(Object.keys(PARTS).map((part) => buildPart(part, { options, partOf, exported })));
  return { files: built.flatMap(({ files }) => files), inputs: built.flatMap(({ inputs }) => inputs) };
}

/** @returns the imports of each module, by its path */
async function readModules(options) {
  const { metafile } = await build({
    ...options,
    packages: 'external',
    plugins: [],
    sourcemap: false,
    metafile: true,
    write: false,
    entryPoints: [ENTRY],
  });
  return new Map(
    Object.entries(metafile.inputs).map(([path, { imports }]) => [path, imports.filter(({ external }) => !external)]),
  );
}

/** @returns the part of each module */
function assignParts(modules) {
  const listed = Object.entries(PARTS).flatMap(([part, places]) => places.map((place) => ({ part, place })));
  const partOf = new Map();
  const contains = (place, path) => path === place || (place.endsWith('/') && path.startsWith(place));
  for (const { place } of listed) {
    if (![...modules.keys()].some((path) => contains(place, path)))
      throw new Error(`${place} holds nothing of the program`);
  }
  for (const path of modules.keys()) {
    const matches = listed.filter(({ place }) => contains(place, path));
    // The longest place says most about the module.
    const best = matches.sort((one, other) => other.place.length - one.place.length)[0];
    if (best !== undefined) partOf.set(path, best.part);
  }
  for (const part of Object.keys(PARTS)) {
    const found = [...partOf].filter(([, of]) => of === part).map(([path]) => path);
    for (const path of found) {
      for (const { path: imported, kind } of modules.get(path)) {
        if (kind === 'dynamic-import' || partOf.has(imported)) continue;
        partOf.set(imported, part);
        found.push(imported);
      }
    }
  }
  for (const path of modules.keys()) if (!partOf.has(path)) throw new Error(`${path} is in no part of the program`);
  return partOf;
}

/** @returns the modules of each part that other parts use, by the part */
function exportsOf(modules, partOf) {
  const exported = new Map([[partOf.get(ENTRY), new Set([ENTRY])]]);
  for (const [path, imports] of modules) {
    for (const { path: imported } of imports) {
      const part = partOf.get(imported);
      if (part === partOf.get(path)) continue;
      if (!exported.has(part)) exported.set(part, new Set());
      exported.get(part).add(imported);
    }
  }
  return exported;
}

/** @returns for each part the exported names of these modules, by their paths */
async function readExports(exported) {
  const { metafile } = await build({
    entryPoints: [...exported.values()].flatMap((paths) => [...paths]),
    format: 'esm',
    outdir: '.',
    metafile: true,
    write: false,
  });
  const namesOf = new Map(Object.values(metafile.outputs).map(({ entryPoint, exports }) => [entryPoint, exports]));
  const withNames = (paths) => new Map([...paths].sort().map((path) => [path, namesOf.get(path)]));
  return new Map([...exported].map(([part, paths]) => [part, withNames(paths)]));
}

async function buildPart(part, { options, partOf, exported }) {
  const { outputFiles, metafile } = await build({
    ...options,
    stdin: { contents: renderEntry(exported.get(part) ?? new Map()), resolveDir: '.', sourcefile: `${part}.js` },
    entryNames: part,
    plugins: [...options.plugins, { name: 'parts', setup: (build) => keepApart(build, part, partOf) }],
  });
  const files = outputFiles.map(({ path, text }) => ({
    path,
    contents: path.endsWith('.map') ? text : joinParts(text, part),
  }));
  return { files, inputs: Object.keys(metafile.inputs) };
}

/**
 * Each module is a function, as most of them are asked for long after the part is loaded. Values are copied one by one:
 * for a module as a whole, the bundler would write an object of getters.
 */
function renderEntry(exported) {
  const modules = [...exported].map(([path, names], index) => {
    const aliases = names.map((name) => [name, `m${index}_${name}`]);
    const imported = aliases.map(([name, alias]) => `${name} as ${alias}`).join(', ');
    const members = aliases.map(([name, alias]) => `${name}: ${alias}`).join(', ');
    return {
      imports: `import { ${imported} } from './${path}';`,
      values: `let v${index}; const f${index} = () => (v${index} ??= { ${members} });`,
      member: `${JSON.stringify(path)}: f${index},`,
    };
  });
  const lines = [
    ...modules.map(({ imports }) => imports),
    ...modules.map(({ values }) => values),
    'export const modules = {',
    ...modules.map(({ member }) => member),
    '};',
  ];
  return `${lines.join('\n')}\n`;
}

function keepApart({ onResolve }, part, partOf) {
  onResolve({ filter: /^\.{1,2}\// }, ({ path, importer, resolveDir, kind }) => {
    if (kind === 'entry-point' || importer.includes('/node_modules/')) return undefined;
    const place = relative('.', join(resolveDir, path)).split(sep).join('/');
    const of = partOf.get(place);
    return of === undefined || of === part ? undefined : { path: `${ELSEWHERE}${of}:${place}`, external: true };
  });
}

/**
 * Replaces what the bundler wrote for modules of other parts: parts of BASE are loaded at once, the others with the first use of
 * an import. No line moves, so the source map stays right.
 */
function joinParts(text, part) {
  const order = Object.keys(PARTS);
  const isLoaded = (other) => BASE.includes(other) && order.indexOf(other) < order.indexOf(part);
  const deferred = new Set();
  const defer = (name, found) => {
    deferred.add(name);
    return `var ${name}_; function ${name}() { return (${name}_ ??= ${found}); }`;
  };
  return text
    .replaceAll(/^var (import_\w+) = require\("part:([^":]+):([^"]+)"\);$/gm, (_, name, other, path) =>
      isLoaded(other) ? `var ${name} = ${moduleOf(other, path)};` : defer(name, moduleOf(other, path)),
    )
    .replaceAll(/^var (import_\w+) = (require\("(node:|\.\/)([^"]+)"\));$/gm, (line, name, found, kind, module) =>
      kind === './' || DEFERRED_BUILTINS.includes(module) ? defer(name, found) : line,
    )
    .replaceAll(/\b__toESM\((require\("part:[^"]+"\)), 1\)/g, '$1')
    .replaceAll(/\brequire\("part:([^":]+):([^"]+)"\)/g, (_, other, path) => moduleOf(other, path))
    .replaceAll(/\b(import_\w+)\./g, (access, name) => (deferred.has(name) ? `(${name}()).` : access));
}

function moduleOf(part, path) {
  return `require("./${part}.cjs").modules["${path}"]()`;
}
