import { userInfo } from 'node:os'
import type { NewOperation } from '../../../inbox/reading.ts'
import type { ActionContext } from './action.ts'

/** `undefined` in a container without a user name. */
export function userName(): string | undefined {
  try {
    return userInfo().username || undefined
  } catch {
    return undefined
  }
}

/** Records who did what, for the dashboard. */
export async function recordOperation(
  { inbox, values, screen }: ActionContext,
  operation: NewOperation,
): Promise<void> {
  try {
    await inbox.operations.add({ by: userName(), reason: values.reason, ...operation })
  } catch (error) {
    screen.note(`done, but the record of who did it could not be stored: ${(error as Error).message}`)
  }
}
