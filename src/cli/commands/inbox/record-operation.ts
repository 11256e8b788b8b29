import { userInfo } from 'node:os'
import type { NewOperation } from '../../../inbox/reading.ts'
import type { ActionContext } from './action.ts'

/** The name of the user who runs the program. A container may have none. */
export function userName(): string | undefined {
  try {
    return userInfo().username || undefined
  } catch {
    return undefined
  }
}

/** Stores what was done, for the page that shows who did what. */
export async function recordOperation(
  { inbox, values, screen }: ActionContext,
  operation: NewOperation,
): Promise<void> {
  try {
    await inbox.operations.add({ by: userName(), reason: values.reason, ...operation })
  } catch (error) {
    screen.note(`it was done, but who did it could not be stored: ${(error as Error).message}`)
  }
}
