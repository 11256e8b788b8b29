import { WebhookError } from '../../../errors.ts'
import { fields, type Payload } from '../../../testing/payload.ts'

/**
 * Reads an edited body.
 * @returns the body without indentation, and the payload with the edited fields
 * @throws WebhookError `invalid_option` unless the text is a JSON object
 */
export function readEdited(text: string, payload: Payload): { readonly body: string; readonly payload: Payload } {
  const edited = parsed(text)
  if (typeof edited !== 'object' || edited === null || Array.isArray(edited)) {
    throw new WebhookError('invalid_option', 'the payload must be a JSON object')
  }
  const texts = Object.entries(edited).filter(([name, value]) => isField(name) && typeof value === 'string')
  return { body: JSON.stringify(edited), payload: { ...payload, ...Object.fromEntries(texts) } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new WebhookError('invalid_option', `the payload is not JSON: ${(error as Error).message}`)
  }
}

const isField = (name: string): boolean => (fields as readonly string[]).includes(name)
