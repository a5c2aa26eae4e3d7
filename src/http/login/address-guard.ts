import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { lookup as lookUpHost } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { hostOf, isLoopback, isSpecialAddress } from '../addresses.ts';
import { showUrl } from '../shown-url.ts';
import { loginError } from './login-error.ts';

const WAY_OUT = 'The metadata of the server, or of its authorization server, is wrong or hostile; tell its operators.';

/**
 * Decides which addresses metadata may direct the bridge, and the user's browser, to. A server on the Internet must not
 * make the bridge send requests to private addresses, which only the bridge can reach. A server at a private address
 * may name others.
 */
export class AddressGuard {
  readonly #server: URL;
  readonly #peerAddress: string | undefined;
  #isServerPrivate: Promise<boolean> | undefined;

  /**
   * @param peerAddress the address from which the server asked for the login; undefined if unknown, as behind a proxy.
   * With it, the name of the server need not be resolved again, which might return another address by now.
   */
  constructor(server: URL, peerAddress?: string) {
    this.#server = server;
    this.#peerAddress = peerAddress;
  }

  /** Checks a URL before a connection is opened, without resolving its name. Rejects with ERR_UPSTREAM_AUTH. */
  async check(url: URL): Promise<void> {
    await this.#check(url, `${showUrl(url)} is to be asked in a login`);
  }

  /**
   * Checks a page that a browser will open. The browser resolves the name and picks an address by itself, so none of
   * the addresses may be private. A name that cannot be resolved here is accepted, because the browser's proxy may be
   * able to resolve it. Rejects with ERR_UPSTREAM_AUTH.
   */
  async checkPage(url: URL): Promise<void> {
    const use = `${showUrl(url)} is to be opened in the browser for a login`;
    await this.#check(url, use);
    if (await this.#allowsPrivate()) return;
    const addresses = await lookUpHost(hostOf(url), { all: true }).catch(() => []);
    if (addresses.some(({ address }) => isSpecialAddress(address))) throw refusePrivate(use);
  }

  async #check(url: URL, use: string): Promise<void> {
    if (!isSecure(url)) throw loginError(`${use}, but not over https`, WAY_OUT);
    if (url.username !== '' || url.password !== '') {
      throw loginError(`${use}, but with a user name or a password in its URL`, WAY_OUT);
    }
    if (isPrivateByName(url) && !(await this.#allowsPrivate())) throw refusePrivate(use);
  }

  /**
   * Returns a lookup function that resolves a name and removes private addresses in one step, so that only checked
   * addresses are connected to; undefined if private addresses are allowed. In networks with both address families,
   * names of local machines may resolve to a private IPv4 address and a public IPv6 address.
   */
  async lookupFor(url: URL): Promise<LookupFunction | undefined> {
    if (await this.#allowsPrivate()) return undefined;
    return (host, options, callback) => {
      const all: LookupOptions & { readonly all: true } = { ...options, all: true };
      lookup(host, all, (error, found: LookupAddress[]) => {
        if (error !== null) return callback(error, '', 4);
        const publicOnes = found.filter(({ address }) => !isSpecialAddress(address));
        const [first] = publicOnes;
        if (first === undefined) return callback(refusePrivate(`${showUrl(url)} is to be asked in a login`), '', 4);
        if (options.all === true) callback(null, publicOnes);
        else callback(null, first.address, first.family);
      });
    };
  }

  #allowsPrivate(): Promise<boolean> {
    this.#isServerPrivate ??= this.#findWhetherPrivate();
    return this.#isServerPrivate;
  }

  /**
   * Resolves with true if the server is at a private address. A server whose name only a proxy can resolve counts as
   * public. If its answering address is unknown and its name has both private and public addresses, it also counts as
   * public: the owner of a name can add a private address to it.
   */
  async #findWhetherPrivate(): Promise<boolean> {
    const host = hostOf(this.#server);
    if (isLoopback(host)) return true;
    const known = isIP(host) === 0 ? this.#peerAddress : host;
    if (known !== undefined) return isSpecialAddress(known);
    const addresses = await lookUpHost(host, { all: true }).catch(() => []);
    return addresses.length > 0 && addresses.every(({ address }) => isSpecialAddress(address));
  }
}

function isPrivateByName(url: URL): boolean {
  const host = hostOf(url);
  return isLoopback(host) || isSpecialAddress(host);
}

/** [spec 2025-11-25 basic/authorization#communication-security] The URL must have https, or http on this machine. */
export function isSecure(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(hostOf(url)));
}

function refusePrivate(use: string) {
  return loginError(`${use}, but lies where the Internet does not lead to, unlike the server`, WAY_OUT);
}
