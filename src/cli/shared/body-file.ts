import { readEdited } from '../../emulator/service/edited.ts'
import { fields, type Payload } from '../../testing/payload.ts'
import { type Flag, UsageError } from './flags.ts'

/** A body from a file, to be sent byte for byte. */
export interface GivenBody {
  readonly text: string
  /** Those of its fields that payloads of the service also have. The others are empty. */
  readonly payload: Payload
}

const empty = Object.fromEntries(fields.map((name) => [name, ''])) as Payload

/** A flag with a file that holds a JSON object of any service. */
export const bodyFile = (help: string): Flag<GivenBody> => ({
  takes: '<file>',
  help,
  stdin: true,
  file: true,
  read: (text) => {
    try {
      return { text, payload: readEdited(text, empty).payload }
    } catch (error) {
      throw new UsageError(`cannot be sent: ${(error as Error).message}`)
    }
  },
})
