"""What people see of an enterprise, as data; commands and the console show it.

``presentation``: properties, records and permissions in words; ``console``: the data of its pages;
``doctor``: checks of one server; ``hygiene``: checks of directories; ``comparison``: of two;
``routes``: the way of a message; ``tracing``: that of a change; ``sitemap``: the map;
``deletion``: what a deletion takes with it.
"""
