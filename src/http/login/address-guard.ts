import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { lookup as lookUpHost } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { hostOf, isLoopback, isPrivateAddress } from '../addresses.ts';
import { showUrl } from '../shown-url.ts';
import { loginError } from './login-error.ts';

const WAY_OUT = 'The metadata of the server, or of its authorization server, is wrong or hostile; tell its operators.';

/**
 * Decides where metadata may send us. A server out there must not make us ask machines that only we can reach. One that
 * is itself near may name its neighbours.
 */
export class AddressGuard {
  readonly #server: URL;
  #isServerNear: Promise<boolean> | undefined;

  constructor(server: URL) {
    this.#server = server;
  }

  /** What may be said of an address before it is connected to. Rejects with ERR_UPSTREAM_AUTH. */
  async check(url: URL): Promise<void> {
    if (!isSecure(url)) {
      throw loginError(`${showUrl(url)} is to be asked in a login, but not over https`, WAY_OUT);
    }
    const host = hostOf(url);
    const isNear = isLoopback(host) || isPrivateAddress(host);
    if (isNear && !(await this.#mayBeNear())) throw farTooNear(url);
  }

  /**
   * Finds addresses and leaves out private ones, in one step: what was checked is what is connected to. In networks with
   * both, names of their own machines lead to a private address of IPv4 and to a public one of IPv6.
   */
  async lookupFor(url: URL): Promise<LookupFunction | undefined> {
    if (await this.#mayBeNear()) return undefined;
    return (host, options, callback) => {
      const all: LookupOptions & { readonly all: true } = { ...options, all: true };
      lookup(host, all, (error, found: LookupAddress[]) => {
        if (error !== null) return callback(error, '', 4);
        const far = found.filter(({ address }) => !isPrivateAddress(address));
        const [first] = far;
        if (first === undefined) return callback(farTooNear(url), '', 4);
        if (options.all === true) callback(null, far);
        else callback(null, first.address, first.family);
      });
    };
  }

  #mayBeNear(): Promise<boolean> {
    this.#isServerNear ??= isNear(this.#server);
    return this.#isServerNear;
  }
}

/**
 * A name that only a proxy can resolve is that of a server far away. So is one that leads both near and far: whoever
 * owns a name can add one of our addresses to its own.
 */
async function isNear(server: URL): Promise<boolean> {
  const host = hostOf(server);
  if (isLoopback(host) || isPrivateAddress(host)) return true;
  const addresses = await lookUpHost(host, { all: true }).catch(() => []);
  return addresses.length > 0 && addresses.every(({ address }) => isPrivateAddress(address));
}

/** [spec 2025-11-25 basic/authorization#communication-security] https, or this machine. */
export function isSecure(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(hostOf(url)));
}

function farTooNear(url: URL) {
  return loginError(
    `${showUrl(url)} is to be asked in a login, but lies in a private network, unlike the server`,
    WAY_OUT,
  );
}
