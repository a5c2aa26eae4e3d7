import test from 'ava';
import { loadOpenPty, type OpenPty } from '../../src/process/pty-child.ts';

/**
 * Opens pseudo-terminals. Undefined where there are none: @lydell/node-pty has no build for some systems, and
 * pseudo-terminals that pass bytes unchanged do not exist on Windows.
 */
export const openPty = tryLoad();

/** A test that needs a pseudo-terminal, and is skipped where there are none. */
export const ptyTest = openPty === undefined ? test.skip : test;

function tryLoad(): OpenPty | undefined {
  try {
    return loadOpenPty();
  } catch {
    return undefined;
  }
}
