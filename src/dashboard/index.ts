export { localOnly } from './access/local-only.ts'
export { dashboard } from './dashboard.ts'
export type { Dashboard, DashboardOptions, NodeRequest, NodeResponse } from './options.ts'
