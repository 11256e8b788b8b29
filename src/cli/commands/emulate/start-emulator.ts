import { WebhookError } from '../../../index.ts'
import type { Emulator, EmulatorOptions } from '../../../service/emulator/index.ts'
import { explainPort } from '../../shared/serving.ts'

/** Default port of `emulate`, and of `dev` without `--base-url`. */
export const emulatorPort = 4010

type Given<Options> = { readonly [Name in keyof Options]?: Options[Name] | undefined }

/** `undefined` options get their defaults. */
export async function startEmulator({ port = emulatorPort, ...given }: Given<EmulatorOptions>): Promise<Emulator> {
  // Lazy: the emulator is most of the code, and other commands start faster without it.
  const { createEmulator } = await import('../../../service/emulator/index.ts')
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return createEmulator({ port, ...options }).catch((error) => {
    throw error instanceof WebhookError && error.cause ? explainPort(error.cause, port) : error
  })
}
