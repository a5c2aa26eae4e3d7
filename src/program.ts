/** The contents of dist/cli.cjs: the command line, and the library that programs import. */
export { main } from './cli.ts';
export * from './library.ts';
