import { readEdited } from '../../service/emulator/service/edited.ts'
import { fields, type Payload } from '../../testing/payload.ts'
import { type Flag, UsageError } from './flags.ts'

/** A body from a file, sent byte for byte. */
export interface GivenBody {
  readonly text: string
  /** Its fields that the service's payloads also have; the others are empty. */
  readonly payload: Payload
}

const empty = Object.fromEntries(fields.map((name) => [name, ''])) as Payload

/** A flag for a file with a JSON object of any service. */
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
