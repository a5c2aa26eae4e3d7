import type { Target } from '../config/server.ts';
import { showUrl } from '../http/shown-url.ts';
import { showStreamAddress } from '../http/socket-addresses.ts';
import { nameCommand } from '../process/command-name.ts';

/** How a server is called where people look, unless a file names it. Holds no credential. */
export function nameTarget(target: Target): string {
  switch (target.kind) {
    case 'url':
      return showUrl(target.url);
    case 'stream':
      return showStreamAddress(target.address);
    case 'command':
      return nameCommand(target.command, target.args);
  }
}
