"""Two recorded connections through queues of the Linux kernel, beside ours."""
