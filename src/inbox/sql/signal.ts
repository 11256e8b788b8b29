/**
 * Why a process looks for events. `new`: some were accepted. `due`: older ones are due again. `awaited`: some may wait for
 * handlers that this process has. `timer`: time has passed. `any`: anything may have changed.
 */
export type Reason = 'new' | 'due' | 'awaited' | 'timer' | 'any'

/** A message between the processes of an inbox. `pause`: pauses have changed. `replay`: unreadable deliveries were marked. */
export type Signal = Exclude<Reason, 'timer'> | 'pause' | 'replay' | `stop ${string}`
