import { renderHelp } from "/work/wt/docs/src/cli/help/help.ts";
import { renderCompletion } from "/work/wt/docs/src/cli/completion.ts";
const [what, cols = "80", color = "false"] = process.argv.slice(2);
if (what === "fish") console.log(renderCompletion("fish"));
else console.log(renderHelp({ topic: JSON.parse(what), columns: Number(cols), color: color === "true" }));
//# sourceMappingURL=data:application/json;base64,ewogICJ2ZXJzaW9uIjogMywKICAic291cmNlcyI6IFsiaC50cyJdLAogICJtYXBwaW5ncyI6ICJBQUFBLFNBQVMsa0JBQWtCO0FBQzNCLFNBQVMsd0JBQXdCO0FBQ2pDLE1BQU0sQ0FBQyxNQUFNLE9BQUssTUFBTSxRQUFNLE9BQU8sSUFBSSxRQUFRLEtBQUssTUFBTSxDQUFDO0FBQzdELElBQUksU0FBTyxPQUFRLFNBQVEsSUFBSSxpQkFBaUIsTUFBTSxDQUFDO0FBQUEsSUFDbEQsU0FBUSxJQUFJLFdBQVcsRUFBQyxPQUFPLEtBQUssTUFBTSxJQUFLLEdBQUcsU0FBUSxPQUFPLElBQUksR0FBRyxPQUFPLFVBQVEsT0FBTSxDQUFDLENBQUM7IiwKICAibmFtZXMiOiBbXQp9Cg==
//g1hxrCWx6042g3SIntzpJmDFQMB4p9HSYHRdvpdygMg
