import { readDefinitions } from "/work/wt/pins/src/mcp/classify/tool-definition.ts";
import { serverFrame } from "/work/wt/pins/test/support/frames.ts";
const tool = (i) => ({ name: `tool_${i}`, description: "Does something useful with the thing. ".repeat(8), inputSchema: { type: "object", properties: Object.fromEntries(Array.from({ length: 6 }, (_, k) => [`arg${k}`, { type: "string", description: "The argument that says what to do." }])), required: ["arg0"] }, annotations: { readOnlyHint: true } });
const frame = serverFrame({ id: 1, result: { tools: Array.from({ length: 5e3 }, (_, i) => tool(i)) } });
for (let n = 0; n < 4; n++) {
  const t = performance.now();
  const r = readDefinitions(frame);
  console.log(frame.bytes.length, r?.tools.length, (performance.now() - t).toFixed(0), "ms");
}
//# sourceMappingURL=data:application/json;base64,ewogICJ2ZXJzaW9uIjogMywKICAic291cmNlcyI6IFsiYmVuY2gudHMiXSwKICAibWFwcGluZ3MiOiAiQUFBQSxTQUFTLHVCQUF1QjtBQUNoQyxTQUFTLG1CQUFtQjtBQUM1QixNQUFNLE9BQU8sQ0FBQyxPQUFlLEVBQUUsTUFBTSxRQUFRLENBQUMsSUFBSSxhQUFhLHlDQUF5QyxPQUFPLENBQUMsR0FBRyxhQUFhLEVBQUUsTUFBTSxVQUFVLFlBQVksT0FBTyxZQUFZLE1BQU0sS0FBSyxFQUFDLFFBQVEsRUFBQyxHQUFHLENBQUMsR0FBRyxNQUFNLENBQUMsTUFBTSxDQUFDLElBQUksRUFBRSxNQUFNLFVBQVUsYUFBYSxxQ0FBcUMsQ0FBQyxDQUFDLENBQUMsR0FBRyxVQUFVLENBQUMsTUFBTSxFQUFFLEdBQUcsYUFBYSxFQUFFLGNBQWMsS0FBSyxFQUFFO0FBQ25XLE1BQU0sUUFBUSxZQUFZLEVBQUUsSUFBSSxHQUFHLFFBQVEsRUFBRSxPQUFPLE1BQU0sS0FBSyxFQUFFLFFBQVEsSUFBSyxHQUFHLENBQUMsR0FBRyxNQUFNLEtBQUssQ0FBQyxDQUFDLEVBQUUsRUFBRSxDQUFDO0FBQ3ZHLFNBQVMsSUFBSSxHQUFHLElBQUksR0FBRyxLQUFLO0FBQUUsUUFBTSxJQUFJLFlBQVksSUFBSTtBQUFHLFFBQU0sSUFBSSxnQkFBZ0IsS0FBSztBQUFHLFVBQVEsSUFBSSxNQUFNLE1BQU0sUUFBUSxHQUFHLE1BQU0sU0FBUyxZQUFZLElBQUksSUFBSSxHQUFHLFFBQVEsQ0FBQyxHQUFHLElBQUk7QUFBRzsiLAogICJuYW1lcyI6IFtdCn0K
//KZgTgjm7HvizOIkMcPhfqY8Wtnswbkn994cgURDESfs
