import { renderHelp } from "/work/wt/aggconf/src/cli/help/help.ts";
process.stdout.write(renderHelp({ topic: { kind: "all" }, columns: 100, color: false }));
//# sourceMappingURL=data:application/json;base64,ewogICJ2ZXJzaW9uIjogMywKICAic291cmNlcyI6IFsicmVuZGVyLnRzIl0sCiAgIm1hcHBpbmdzIjogIkFBQUEsU0FBUyxrQkFBa0I7QUFDM0IsUUFBUSxPQUFPLE1BQU0sV0FBVyxFQUFFLE9BQU8sRUFBRSxNQUFNLE1BQU0sR0FBRyxTQUFTLEtBQUssT0FBTyxNQUFNLENBQUMsQ0FBQzsiLAogICJuYW1lcyI6IFtdCn0K
//LaB6TAFTJ_i9E_BcFLQMWQUSKGILrOOfMSswO50Ckmw
