export { localOnly } from './access/local-only.ts'
export { dashboard } from './dashboard.ts'
export type { Dashboard, DashboardOptions, NodeRequest, NodeResponse, Operator } from './options.ts'
