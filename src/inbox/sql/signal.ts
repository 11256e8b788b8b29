/**
 * A message between processes. `new`: an event was accepted. `due`: a lane is ready for another reason. `awaited`: some
 * event may wait for this process's handlers. `pause`: pauses changed. `replay`: unreadable deliveries were marked.
 * `offered`: an application committed an event of its own.
 * `stop`: an operator stops the handler of the event with that id. `any`: some signal may have been missed.
 */
export type Signal = 'new' | 'due' | 'awaited' | 'any' | 'pause' | 'replay' | 'offered' | `stop ${string}`
