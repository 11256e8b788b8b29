export const refusedHint = 'is the server running, and are the host and the port right?'

/** Adds the hint to a message about a refused connection. */
export const withRefusedHint = (message: string): string =>
  message.includes('ECONNREFUSED') && !message.includes(refusedHint) ? `${message} (${refusedHint})` : message
