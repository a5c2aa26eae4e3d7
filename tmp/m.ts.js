import { renderManPage } from "/work/wt/docs/scripts/man-page.ts";
process.stdout.write(renderManPage());
//# sourceMappingURL=data:application/json;base64,ewogICJ2ZXJzaW9uIjogMywKICAic291cmNlcyI6IFsibS50cyJdLAogICJtYXBwaW5ncyI6ICJBQUFBLFNBQVMscUJBQXFCO0FBQzlCLFFBQVEsT0FBTyxNQUFNLGNBQWMsQ0FBQzsiLAogICJuYW1lcyI6IFtdCn0K
//c3i2V_Ru2ChaW8xg9lUYP_5kry_LfwW-hHaBhncFkDY
