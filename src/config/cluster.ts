/** Configuration of several replicas behind one address. */
export interface ClusterConfig {
  readonly store: {
    readonly address: StoreAddress;
    readonly tls: StoreTls;
    /** Precedes each key in Redis. */
    readonly prefix: string;
  };
  /** The origin at which the other replicas reach this one. */
  readonly advertise: URL;
  /** The replicas' shared secret: the first key seals, all of them open. */
  readonly keys: readonly [string, ...string[]];
  /** After a replica has been silent for this long, the others take over what they can. */
  readonly leaseMs: number;
  /** A server's limits apply to each replica separately, or to all replicas together. */
  readonly limits: 'of-each-replica' | 'of-all-replicas';
}

/** The address of Redis, with the credentials to connect. */
export interface StoreAddress {
  /**
   * `single`: one server, or any setup that has a single address. `sentinel`: the hosts are sentinels, which know the
   * current master. `cluster`: the hosts are nodes of a Redis Cluster, which know the others.
   */
  readonly topology: 'single' | 'sentinel' | 'cluster';
  readonly hosts: readonly [StoreHost, ...StoreHost[]];
  /** The master's name at the sentinels; undefined for other topologies. */
  readonly masterName: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** The login at the sentinels, which have users of their own; undefined if they require none. */
  readonly sentinelLogin: { readonly user: string | undefined; readonly password: string } | undefined;
  readonly database: number;
  readonly tls: boolean;
}

/**
 * TLS for the connection to Redis: contents of PEM files. Without `ca`, Node's certificate authorities are trusted;
 * without `cert` and `key`, no client certificate is sent.
 */
export interface StoreTls {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export interface StoreHost {
  readonly host: string;
  readonly port: number;
}
