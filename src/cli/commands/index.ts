import type { Command, CommandGroup } from '../shared/command.ts'
import { dev } from './dev.ts'
import { doctor } from './doctor.ts'
import { emulate } from './emulate.ts'
import { inbox } from './inbox.ts'
import { init } from './init.ts'
import { keys } from './keys.ts'
import { listen } from './listen.ts'
import { resend } from './resend.ts'
import { trigger } from './trigger.ts'
import { webhooks } from './webhooks.ts'

/** In the order of the help. */
export const commands: readonly (Command | CommandGroup)[] = [
  init,
  emulate,
  dev,
  trigger,
  listen,
  resend,
  doctor,
  inbox,
  keys,
  webhooks,
]
