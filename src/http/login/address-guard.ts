import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { lookup as lookUpHost } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { hostOf, isLoopback, isSpecialAddress } from '../addresses.ts';
import { showUrl } from '../shown-url.ts';
import { loginError } from './login-error.ts';

const WAY_OUT = 'The metadata of the server, or of its authorization server, is wrong or hostile; tell its operators.';

/**
 * Decides where metadata may send us, and the user's browser. A server out there must not make us ask machines that only
 * we can reach. One that is itself near may name its neighbours.
 */
export class AddressGuard {
  readonly #server: URL;
  readonly #peerAddress: string | undefined;
  #isServerNear: Promise<boolean> | undefined;

  /**
   * @param peerAddress from where the server asked for the login; undefined: not known, as behind a proxy. With it, the
   * name of the server need not be resolved again, which could by now lead to somewhere else.
   */
  constructor(server: URL, peerAddress?: string) {
    this.#server = server;
    this.#peerAddress = peerAddress;
  }

  /** What may be said of an address before it is connected to. Rejects with ERR_UPSTREAM_AUTH. */
  async check(url: URL): Promise<void> {
    await this.#check(url, `${showUrl(url)} is to be asked in a login`);
  }

  /**
   * Checks a page that a browser is sent to. The browser resolves names and picks an address by itself, so none of the
   * addresses may be near. What cannot be resolved here can perhaps be by its proxy. Rejects with ERR_UPSTREAM_AUTH.
   */
  async checkPage(url: URL): Promise<void> {
    const use = `${showUrl(url)} is to be opened in the browser for a login`;
    await this.#check(url, use);
    if (await this.#mayBeNear()) return;
    const addresses = await lookUpHost(hostOf(url), { all: true }).catch(() => []);
    if (addresses.some(({ address }) => isSpecialAddress(address))) throw farTooNear(use);
  }

  async #check(url: URL, use: string): Promise<void> {
    if (!isSecure(url)) throw loginError(`${use}, but not over https`, WAY_OUT);
    if (url.username !== '' || url.password !== '') {
      throw loginError(`${use}, but with a user name or a password in its URL`, WAY_OUT);
    }
    if (isNearByName(url) && !(await this.#mayBeNear())) throw farTooNear(use);
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
        const far = found.filter(({ address }) => !isSpecialAddress(address));
        const [first] = far;
        if (first === undefined) return callback(farTooNear(`${showUrl(url)} is to be asked in a login`), '', 4);
        if (options.all === true) callback(null, far);
        else callback(null, first.address, first.family);
      });
    };
  }

  #mayBeNear(): Promise<boolean> {
    this.#isServerNear ??= this.#findNearness();
    return this.#isServerNear;
  }

  /**
   * A name that only a proxy can resolve is that of a server far away. So is one that leads both near and far, where it is
   * not known from where the server has answered: whoever owns a name can add one of our addresses to its own.
   */
  async #findNearness(): Promise<boolean> {
    const host = hostOf(this.#server);
    if (isLoopback(host)) return true;
    const known = isIP(host) === 0 ? this.#peerAddress : host;
    if (known !== undefined) return isSpecialAddress(known);
    const addresses = await lookUpHost(host, { all: true }).catch(() => []);
    return addresses.length > 0 && addresses.every(({ address }) => isSpecialAddress(address));
  }
}

function isNearByName(url: URL): boolean {
  const host = hostOf(url);
  return isLoopback(host) || isSpecialAddress(host);
}

/** [spec 2025-11-25 basic/authorization#communication-security] https, or this machine. */
export function isSecure(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(hostOf(url)));
}

function farTooNear(use: string) {
  return loginError(`${use}, but lies where the Internet does not lead to, unlike the server`, WAY_OUT);
}
