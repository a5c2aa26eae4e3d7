import { basename } from 'node:path';
import type { Target } from '../config/server.ts';
import { showUrl } from '../http/shown-url.ts';
import { showGrpcAddress, showStreamAddress } from '../http/socket-addresses.ts';
import { showServer } from '../mqtt/show-address.ts';
import { nameCommand } from '../process/command-name.ts';

/**
 * Returns the name under which a server is shown to users, unless a configuration file names it. The name contains no
 * credentials.
 */
export function nameTarget(target: Target): string {
  switch (target.kind) {
    case 'url':
      return showUrl(target.url);
    case 'stream':
      return showStreamAddress(target.address);
    case 'grpc':
      return showGrpcAddress(target);
    case 'mqtt':
      return showServer(target.address, target.serverName);
    case 'command':
      return nameCommand(target.command, target.args);
    case 'replay':
      return `replay:${basename(target.file)}${target.server === undefined ? '' : `#${target.server}`}`;
  }
}
