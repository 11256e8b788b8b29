import type { PageState } from './page-state.ts'

/** The name of a webhook that may have been deleted. */
export const webhookName = ({ parts }: PageState, id: string): string =>
  parts.workspace.webhooks.get(id)?.name ?? 'deleted webhook'
