/** The entry of the program, which scripts/build.js bundles: the command line, and the library that programs import. */
export { main } from './cli.ts';
export { BridgeError, connect, createBridge, probe, serve } from './library.ts';
