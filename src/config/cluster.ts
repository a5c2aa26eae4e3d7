/** Several replicas behind one address. */
export interface ClusterConfig {
  readonly store: {
    readonly address: StoreAddress;
    readonly tls: StoreTls;
    /** Before each key. */
    readonly prefix: string;
  };
  /** Where the others reach this one: an origin. */
  readonly advertise: URL;
  /** What they share: one key a line, of which the first seals. */
  readonly key: string;
  /** After this much silence of a replica others take over what they can. */
  readonly leaseMs: number;
  /** For whom the limits of a server hold: for each replica, or for all of them together. */
  readonly limits: 'of-each-replica' | 'of-all-replicas';
}

/** Where Redis is. */
export interface StoreAddress {
  /**
   * - `single`: one server, or whatever stands for it at one address.
   * - `sentinel`: the sentinels know which server it is now.
   * - `cluster`: some nodes of a Redis Cluster, which know the others.
   */
  readonly topology: 'single' | 'sentinel' | 'cluster';
  readonly hosts: readonly [StoreHost, ...StoreHost[]];
  /** What the sentinels call it; only they need it. */
  readonly masterName: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** How to log in at the sentinels, which have users of their own; undefined: they ask nobody. */
  readonly sentinelLogin: { readonly user: string | undefined; readonly password: string } | undefined;
  readonly database: number;
  readonly tls: boolean;
}

/** Whom we trust as Redis, and as whom we show ourselves: contents of PEM files. Undefined: what Node has, or nobody. */
export interface StoreTls {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export interface StoreHost {
  readonly host: string;
  readonly port: number;
}
