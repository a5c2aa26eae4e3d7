import { createHash } from 'node:crypto';
import type { ServerConfig, StreamAddress } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import type { PinFiles } from '../pins/pin-files.ts';
import type { CreateGuard } from '../upstream/connection.ts';

/** Guards of the servers whose tools are pinned. The code for pins is loaded with the first of them. */
export class Guards {
  readonly #deps: Deps;
  #files: PinFiles | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Resolves with a function that guards a server's connections, or with undefined if its tools are not pinned. Rejects
   * with ERR_CONFIG_PINS if the file is damaged.
   */
  async of(
    server: Pick<ServerConfig, 'listing' | 'target' | 'pinTools'>,
    deps: Deps,
  ): Promise<CreateGuard | undefined> {
    if (server.pinTools === undefined) return undefined;
    const { PinFiles } = await import('../pins/pin-files.ts');
    this.#files ??= new PinFiles(this.#deps);
    return this.#files.createGuards(server.pinTools, pinNameOf(server), deps);
  }

  /** Resolves when everything that processes share was written, as far as possible. */
  async close(): Promise<void> {
    await this.#files?.close();
  }
}

/**
 * Names a server in a file with pins: its name in the configuration file, or its command or address, so that the pins of
 * one server never count for another.
 */
export function pinNameOf({ listing, target }: Pick<ServerConfig, 'listing' | 'target'>): string {
  if (listing !== undefined) return listing.name;
  switch (target.kind) {
    case 'command':
      return [target.command, ...target.args]
        .map((word) => (/\s|^$/.test(word) ? JSON.stringify(word) : word))
        .join(' ');
    case 'url': {
      const { origin, protocol, host, pathname, search } = target.url;
      const place = origin === 'null' ? `${protocol}//${host}` : origin;
      // A query may hold a credential, and may select one of several servers.
      const query = search === '' ? '' : `?${createHash('sha256').update(search).digest('base64url')}`;
      return `${place}${pathname}${query}${target.socketPath === undefined ? '' : ` at ${target.socketPath}`}`;
    }
    case 'aggregate':
      // Pins are about the tools of each server.
      return 'aggregate';
    case 'replay':
      return `replay:${target.file}${target.server === undefined ? '' : `#${target.server}`}`;
    case 'stream':
      return nameStream(target.address);
    case 'grpc':
      return `${target.host}:${target.port}`;
    case 'mqtt':
      return `${target.address.host}:${target.address.port} ${target.serverName}`;
  }
}

function nameStream(address: StreamAddress): string {
  return address.kind === 'tcp' ? `${address.host}:${address.port}` : address.path;
}
