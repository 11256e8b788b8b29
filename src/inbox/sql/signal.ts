/**
 * Why a process looks for events. `new`: accepted just now. `due`: an older one is due again. `awaited`: some may wait
 * for this process's handlers. `timer`: time has passed. `any`: anything may have changed.
 */
export type Reason = 'new' | 'due' | 'awaited' | 'timer' | 'any'

/** A message between processes. `pause`: pauses changed. `replay`: unreadable deliveries were marked. */
export type Signal = Exclude<Reason, 'timer'> | 'pause' | 'replay' | `stop ${string}`
